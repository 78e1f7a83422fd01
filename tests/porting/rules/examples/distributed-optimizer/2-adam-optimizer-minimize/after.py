import tensorflow as tf
import os
from npu_bridge.npu_init import (
    FixedLossScaleManager,
    NPUDistributedOptimizer,
    NPULossScaleOptimizer,
)


def train(lr, loss):
    opt = NPULossScaleOptimizer(
        NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)),
        FixedLossScaleManager(loss_scale=1024),
        is_distributed=int(os.getenv("RANK_SIZE", "1")) > 1
    )
    return opt.minimize(loss)
