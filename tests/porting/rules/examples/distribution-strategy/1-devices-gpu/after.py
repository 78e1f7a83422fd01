import tensorflow as tf
from npu_bridge.npu_init import npu_strategy

strategy = npu_strategy.NPUStrategy()
