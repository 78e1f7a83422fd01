import tensorflow as tf

estimator = tf.keras.estimator.model_to_estimator(model)
