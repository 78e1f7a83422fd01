import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer

scale = FixedLossScaleManager(loss_scale=8)
opt = NPULossScaleOptimizer(
    opt, scale)
