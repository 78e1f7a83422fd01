import tensorflow as tf

out, state = tf.nn.dynamic_rnn(cell, x, time_major=True, dtype=tf.float32)
