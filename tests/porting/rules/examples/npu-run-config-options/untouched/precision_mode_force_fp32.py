from npu_bridge.npu_init import *

rc = NPURunConfig(precision_mode='force_fp32')
