from npu_bridge.npu_init import *

rc = NPURunConfig(precision_mode_v2='fp16')
