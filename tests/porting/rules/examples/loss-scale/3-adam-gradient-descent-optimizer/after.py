import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer


def train(name, lr, loss):
  if name == 'adam':
    opt = tf.train.AdamOptimizer(lr)
  else:
    opt = tf.train.GradientDescentOptimizer(lr)
  opt = NPULossScaleOptimizer(opt, FixedLossScaleManager(loss_scale=1024))
  return opt.minimize(loss)
