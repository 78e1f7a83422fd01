import tensorflow as tf


def step(loss, w):
    return w.assign_sub(rate * tf.gradients(loss, w)[0])
