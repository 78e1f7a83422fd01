from npu_bridge.npu_init import *

scale = FixedLossScaleManager(loss_scale=128)
