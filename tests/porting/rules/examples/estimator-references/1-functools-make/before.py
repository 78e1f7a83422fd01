import functools
import tensorflow as tf

make = functools.partial(tf.estimator.Estimator, model_fn=model_fn)
