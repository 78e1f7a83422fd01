import tensorflow as tf

rc = tf.estimator.RunConfig()
tf.estimator.DNNClassifier([8], columns, config=rc)
