import tensorflow as tf


def gelu(x):
    return x * tf.sigmoid(1.702 * x)
