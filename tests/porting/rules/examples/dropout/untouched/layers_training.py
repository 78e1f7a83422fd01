import tensorflow as tf

x = tf.layers.dropout(x, rate=0.5, training=t)
