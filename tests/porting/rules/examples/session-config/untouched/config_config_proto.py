import tensorflow as tf
from npu_bridge.npu_init import *

sess = tf.Session(config=npu_config_proto(config_proto=config))
