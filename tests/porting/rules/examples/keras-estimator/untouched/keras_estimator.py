import tensorflow as tf

print(tf.keras.estimator.model_to_estimator)
