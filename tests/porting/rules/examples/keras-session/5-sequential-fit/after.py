import tensorflow as tf
from npu_bridge.npu_init import close_session, npu_config_proto, set_keras_session_npu_config


def npu_session_config(config=None):
    """Session options for the NPU."""
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        if optimizer.name == "NpuOptimizer":
            optimizer.parameter_map["precision_mode"].s = b"force_fp16"
    return config

npu_keras_session = set_keras_session_npu_config(config=npu_session_config())
model = tf.keras.Sequential()
model.fit(x, y)
close_session(npu_keras_session)
