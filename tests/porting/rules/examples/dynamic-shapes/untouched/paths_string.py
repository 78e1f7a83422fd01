import tensorflow as tf

paths = tf.placeholder(tf.string, [None])
