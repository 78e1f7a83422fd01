from npu_bridge.npu_init import *

opt = NPULossScaleOptimizer(opt, manager)
