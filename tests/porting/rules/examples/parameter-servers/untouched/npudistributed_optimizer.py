from npu_bridge.npu_init import *

opt = NPUDistributedOptimizer(opt)
