import tensorflow as tf

rc = tf.estimator.RunConfig()
estimator = tf.estimator.Estimator(model_fn, config=rc)
