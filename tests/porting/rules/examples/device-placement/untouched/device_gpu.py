import mine as tf

with tf.device('/gpu:0'):
    x = 1
