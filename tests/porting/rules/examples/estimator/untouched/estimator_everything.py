import tensorflow as tf

tf.estimator.Estimator(*everything)
