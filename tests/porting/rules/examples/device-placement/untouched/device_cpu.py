import tensorflow as tf

with tf.device('/cpu:0'):
    x = 1
