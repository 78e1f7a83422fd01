import tensorflow as tf

isinstance(x, tf.estimator.Estimator)
