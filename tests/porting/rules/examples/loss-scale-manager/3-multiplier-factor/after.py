from tensorflow.train.experimental import DynamicLossScale
from npu_bridge.npu_init import ExponentialUpdateLossScaleManager

scale = ExponentialUpdateLossScaleManager(init_loss_scale=2 ** 10, incr_every_n_steps=2000, incr_ratio=factor + 1, decr_every_n_nan_or_inf=1, decr_ratio=1.0 / (factor + 1))
