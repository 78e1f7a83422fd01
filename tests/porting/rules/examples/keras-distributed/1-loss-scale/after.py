import tensorflow as tf
import os
from npu_bridge.npu_init import (
    FixedLossScaleManager,
    NPUDistributedOptimizer,
    NPULossScaleOptimizer,
    npu_distributed_optimizer_wrapper,
)

model = tf.keras.Sequential([layer])
model.compile(npu_distributed_optimizer_wrapper(tf.keras.optimizers.Adam(0.1)), 'mse')
other = tf.keras.Sequential([layer])
other.compile(optimizer=NPULossScaleOptimizer(
    NPUDistributedOptimizer(tf.train.AdamOptimizer(0.1)),
    FixedLossScaleManager(loss_scale=1024),
    is_distributed=int(os.getenv("RANK_SIZE", "1")) > 1
), loss='mse')
