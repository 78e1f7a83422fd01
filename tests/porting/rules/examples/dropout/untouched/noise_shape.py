import tensorflow as tf

x = tf.nn.dropout(x, k, [n, 1, 1], 3)  # whole rows
y = tf.nn.dropout(y, rate=r, noise_shape=tf.shape(y)[:1])
