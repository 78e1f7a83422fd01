import tensorflow as tf

options = tf.RunOptions(timeout_in_ms=1000)
