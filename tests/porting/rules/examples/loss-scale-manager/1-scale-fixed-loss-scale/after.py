import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager

scale = FixedLossScaleManager(loss_scale=128)
