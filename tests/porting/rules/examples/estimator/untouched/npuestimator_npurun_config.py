from npu_bridge.npu_init import *

NPUEstimator(model_fn, config=NPURunConfig())
