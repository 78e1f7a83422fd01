import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto

with tf.Session(config=npu_config_proto()) as sess:
    sess.run(op)
