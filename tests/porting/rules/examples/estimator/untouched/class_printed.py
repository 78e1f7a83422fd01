import tensorflow as tf

print(tf.estimator.Estimator)
