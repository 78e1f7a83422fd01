import tensorflow as tf

tf.estimator.EstimatorSpec(mode, loss=loss)
