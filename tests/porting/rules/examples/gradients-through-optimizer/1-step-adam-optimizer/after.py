import tensorflow as tf
from npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer


def train(loss, lr, step):
  opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(lr), FixedLossScaleManager(loss_scale=1024))
  tvars = tf.trainable_variables()
  grads = [gradient for gradient, _ in opt.compute_gradients(loss, tvars)]
  (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
  return opt.apply_gradients(zip(grads, tvars), global_step=step)
