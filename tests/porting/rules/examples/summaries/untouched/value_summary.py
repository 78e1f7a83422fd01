import tensorflow as tf

value = tf.Summary(value=[])
