import tensorflow as tf

config = tf.ConfigProto(log_device_placement=False)
