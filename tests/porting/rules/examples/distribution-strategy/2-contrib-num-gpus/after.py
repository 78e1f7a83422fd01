from tensorflow.contrib.distribute import MirroredStrategy
from npu_bridge.npu_init import npu_strategy

with npu_strategy.NPUStrategy().scope():
    pass
