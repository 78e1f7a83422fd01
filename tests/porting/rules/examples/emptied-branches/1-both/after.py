import os
import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto

config = tf.ConfigProto()

if chosen():
    pass
sess = tf.Session(config=npu_config_proto(config_proto=config))
sess.close()
