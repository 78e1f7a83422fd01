import tensorflow as tf

x = tf.nn.dropout(x, rate=1 - keep_prob)
