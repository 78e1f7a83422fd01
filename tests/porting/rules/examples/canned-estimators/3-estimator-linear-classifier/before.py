import tensorflow.compat.v1 as tf

model = tf.estimator.LinearClassifier(columns)
