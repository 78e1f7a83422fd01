import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer


class AdamWeightDecay(tf.train.Optimizer):
  pass


opt = NPULossScaleOptimizer(AdamWeightDecay(lr), FixedLossScaleManager(loss_scale=1024))
train_op = opt.minimize(loss)
