import os
import tensorflow as tf
from npu_bridge.npu_init import *

train_op = NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)).minimize(loss)
with tf.Session(config=npu_config_proto()) as sess:
    init = tf.global_variables_initializer()
    sess.run(init)
    sess.run(train_op)
