import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager

manager = FixedLossScaleManager(
    128)
