import tensorflow as tf

print(isinstance(x, tf.estimator.Estimator))
