import tensorflow as tf

x = tf.nn.dropout(x, k, [n, 1, 1], 3)  # whole rows
