import tensorflow as tf
from npu_bridge.npu_init import ExponentialUpdateLossScaleManager

scale = ExponentialUpdateLossScaleManager(init_loss_scale=2**15, incr_every_n_steps=2000, incr_ratio=2, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
