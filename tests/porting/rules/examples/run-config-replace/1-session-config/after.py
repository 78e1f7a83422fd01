import tensorflow as tf
from npu_bridge.npu_init import npu_config_proto, npu_run_config_init


def npu_session_config(config=None):
    """Session options for the NPU."""
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        if optimizer.name == "NpuOptimizer":
            optimizer.parameter_map["precision_mode"].s = b"allow_mix_precision"
    return config

config = tf.estimator.RunConfig(model_dir='logs', session_config=npu_session_config())
config = config.replace(session_config=npu_session_config(tf.ConfigProto(allow_soft_placement=True)))
model = tf.estimator.DNNClassifier([8], columns, config=npu_run_config_init(run_config=config))
