from tensorflow.contrib.mixed_precision import LossScaleOptimizer
from npu_bridge.npu_init import NPULossScaleOptimizer

opt = NPULossScaleOptimizer(opt, manager)
