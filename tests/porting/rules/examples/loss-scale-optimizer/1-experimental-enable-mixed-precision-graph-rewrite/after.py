import tensorflow as tf
from npu_bridge.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer

opt = NPULossScaleOptimizer(opt, ExponentialUpdateLossScaleManager(init_loss_scale=2**15, incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, decr_ratio=0.5))
