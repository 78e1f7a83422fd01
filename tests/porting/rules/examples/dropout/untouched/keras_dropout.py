import tensorflow as tf

x = tf.keras.layers.Dropout(0.5)(x)
