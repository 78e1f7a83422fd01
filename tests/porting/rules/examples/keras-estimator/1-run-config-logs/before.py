import tensorflow as tf

rc = tf.estimator.RunConfig(logs, None, 0, 50)
estimator = tf.keras.estimator.model_to_estimator(model, config=rc)
