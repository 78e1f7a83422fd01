import tensorflow.compat.v1 as tf
from npu_bridge.npu_init import npu_config_proto, npu_run_config_init


def npu_session_config(config=None):
    """Session options for the NPU."""
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        if optimizer.name == "NpuOptimizer":
            optimizer.parameter_map["precision_mode"].s = b"force_fp16"
    return config

model = tf.estimator.LinearClassifier(columns, config=npu_run_config_init(run_config=tf.estimator.RunConfig(session_config=npu_session_config())))
