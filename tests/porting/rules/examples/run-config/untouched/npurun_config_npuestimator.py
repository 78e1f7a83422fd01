from npu_bridge.npu_init import *

rc = NPURunConfig(model_dir=logs)
NPUEstimator(model_fn, config=rc)
