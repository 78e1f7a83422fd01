import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer

opt = tf.train.AdamOptimizer(1e-3)
opt = NPULossScaleOptimizer(opt, FixedLossScaleManager(loss_scale=1024))
train_op = opt.minimize(loss)
