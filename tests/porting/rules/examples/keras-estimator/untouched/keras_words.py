import tensorflow as tf

tf.keras.estimator.model_to_estimator(**words)
