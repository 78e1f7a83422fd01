import tensorflow as tf


def train(name, lr, loss):
  if name == 'adam':
    opt = tf.train.AdamOptimizer(lr)
  else:
    opt = tf.train.GradientDescentOptimizer(lr)
  return opt.minimize(loss)
