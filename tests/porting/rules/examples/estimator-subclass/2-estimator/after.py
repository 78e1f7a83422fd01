from tensorflow.estimator import Estimator
from npu_bridge.npu_init import npu_run_config_init

class Mine(Estimator):
    def __init__(self):
        Estimator.__init__(self, model_fn, None, config=npu_run_config_init())
