import tensorflow as tf

rc = tf.estimator.RunConfig()
a = tf.estimator.Estimator(model_fn, config=rc)
b = tf.estimator.DNNClassifier([8], columns, config=rc)
