import tensorflow as tf

x = tf.nn.dropout(x, keep_prob=k, rate=r)
