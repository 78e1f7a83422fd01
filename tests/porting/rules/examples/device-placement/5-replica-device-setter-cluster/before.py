import tensorflow as tf

with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    build()
with tf.device(choose(4)):
    build()
