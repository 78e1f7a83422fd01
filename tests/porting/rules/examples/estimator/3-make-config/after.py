import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

def make(config=None):
    return tf.estimator.Estimator(model_fn, config=npu_run_config_init(run_config=config))
