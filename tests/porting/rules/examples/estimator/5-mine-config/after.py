import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

class Mine(tf.estimator.Estimator):
    pass

estimator = Mine(model_fn, config=npu_run_config_init(run_config=tf.estimator.RunConfig()))
