from npu_bridge.npu_init import *

strategy = npu_strategy.NPUStrategy()
