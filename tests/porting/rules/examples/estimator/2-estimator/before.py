import os
import tensorflow as tf

estimator = tf.estimator.Estimator(model_fn=model_fn)
