import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer

opt = NPULossScaleOptimizer(opt, FixedLossScaleManager(loss_scale=128))
