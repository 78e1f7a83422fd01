import tensorflow as tf

config = tf.ConfigProto(**words)
