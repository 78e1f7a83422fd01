import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto

sv = tf.train.Supervisor(logdir=logs)
with sv.managed_session(config=npu_config_proto()) as sess:
    pass
