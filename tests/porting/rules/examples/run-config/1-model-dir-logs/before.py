import tensorflow as tf

rc = tf.estimator.RunConfig(model_dir=logs)
estimator = tf.estimator.Estimator(model_fn, config=rc)
