import tensorflow as tf


class Gan(object):
  def build(self):
    self.d_opt = tf.train.AdamOptimizer(1e-4).minimize(self.d_loss)
    self.g_opt = tf.train.AdamOptimizer(1e-4).minimize(self.g_loss)
