from npu_bridge.npu_init import *

keras_to_npu.model_to_npu_estimator(model, config=NPURunConfig())
