import tensorflow as tf

x = tf.cond(is_training, lambda: a, lambda: b)
