import tensorflow as tf

with tf.device('/gpu:0'):
    x = a + b
with tf.device("/device:GPU:1"):
    y = a + b
