import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

class Mine(tf.estimator.Estimator):
    def __init__(self, config):
        super(Mine, self).__init__(model_fn, config=npu_run_config_init(run_config=config))
