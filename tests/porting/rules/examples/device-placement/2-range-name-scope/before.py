import tensorflow as tf

for i in range(n):
    with tf.device('/gpu:%d' % i), tf.name_scope('tower'):
        build(i)
