import tensorflow as tf

roi = tf.load_op_library('roi_pooling.so')
