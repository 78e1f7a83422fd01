import tensorflow as tf

with tf.device('/job:ps/task:0'):
    x = 1
