import tensorflow as tf


def train(lr, loss):
    opt = tf.train.AdamOptimizer(lr)
    return opt.minimize(loss)
