import tensorflow as tf

model = tf.estimator.DNNClassifier([8], columns, config=rc)
