import tensorflow as tf

config = tf.contrib.learn.RunConfig()
