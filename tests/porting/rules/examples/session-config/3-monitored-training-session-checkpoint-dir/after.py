import tensorflow.compat.v1 as tf
from npu_bridge.npu_init import npu_config_proto

with tf.train.MonitoredTrainingSession(
    checkpoint_dir=logs,  # where
    config=npu_config_proto(config_proto=config),
) as sess:
    pass
