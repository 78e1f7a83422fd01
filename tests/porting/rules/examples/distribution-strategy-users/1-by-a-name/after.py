import tensorflow as tf
from npu_bridge.npu_init import npu_strategy


def strategy_for(gpus):
    if gpus > 1:
        return npu_strategy.NPUStrategy()
    return None


strategy = strategy_for(8)
