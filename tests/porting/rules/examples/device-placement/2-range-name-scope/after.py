import tensorflow as tf

for i in range(n):
    with tf.device('/cpu:0'), tf.name_scope('tower'):
        build(i)
