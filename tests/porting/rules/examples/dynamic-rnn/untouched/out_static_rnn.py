import tensorflow as tf

out = tf.nn.static_rnn(cell, xs, dtype=tf.float32)
