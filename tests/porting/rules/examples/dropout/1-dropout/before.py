import tensorflow as tf

x = tf.nn.dropout(x, 0.5)
