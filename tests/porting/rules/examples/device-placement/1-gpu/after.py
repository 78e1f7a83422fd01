import tensorflow as tf

with tf.device('/cpu:0'):
    x = a + b
with tf.device("/cpu:0"):
    y = a + b
