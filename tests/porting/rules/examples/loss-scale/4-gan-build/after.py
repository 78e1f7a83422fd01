import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer


class Gan(object):
  def build(self):
    self.d_opt = NPULossScaleOptimizer(
      tf.train.AdamOptimizer(1e-4),
      FixedLossScaleManager(loss_scale=1024)
    ).minimize(self.d_loss)
    self.g_opt = NPULossScaleOptimizer(
      tf.train.AdamOptimizer(1e-4),
      FixedLossScaleManager(loss_scale=1024)
    ).minimize(self.g_loss)
