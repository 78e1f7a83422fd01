import tensorflow as tf

tf.keras.layers.RNN(cell)
