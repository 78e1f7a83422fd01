import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto


def npu_session_config(config=None):
    """Session options for the NPU."""
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        if optimizer.name == "NpuOptimizer":
            optimizer.parameter_map["precision_mode"].s = b"force_fp16"
    return config

rc = tf.contrib.tpu.RunConfig(
    master=master,
    tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=1000),
    session_config=npu_session_config())
