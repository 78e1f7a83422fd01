import tensorflow as tf

r = tf.rank(x)
s = tf.size(x)
