import tensorflow as tf

x = tf.cast(x, tf.float64)
