import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer

train_op = NPULossScaleOptimizer(
    tf.train.AdamOptimizer(lr),
    FixedLossScaleManager(loss_scale=1024)
).minimize(loss)
