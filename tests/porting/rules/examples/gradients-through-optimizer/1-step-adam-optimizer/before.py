import tensorflow as tf


def train(loss, lr, step):
  opt = tf.train.AdamOptimizer(lr)
  tvars = tf.trainable_variables()
  grads = tf.gradients(loss, tvars)
  (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
  return opt.apply_gradients(zip(grads, tvars), global_step=step)
