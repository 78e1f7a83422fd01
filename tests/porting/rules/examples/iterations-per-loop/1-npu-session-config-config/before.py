import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto


def npu_session_config(config=None):
    """Session options for the NPU."""
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        if optimizer.name == "NpuOptimizer":
            optimizer.parameter_map["iterations_per_loop"].i = 10
    return config

train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
with tf.Session(config=npu_session_config()) as sess:
    for step in range(1000):
        sess.run([train_op, loss])
