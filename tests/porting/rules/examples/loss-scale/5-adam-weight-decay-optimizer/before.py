import tensorflow as tf


class AdamWeightDecay(tf.train.Optimizer):
  pass


opt = AdamWeightDecay(lr)
train_op = opt.minimize(loss)
