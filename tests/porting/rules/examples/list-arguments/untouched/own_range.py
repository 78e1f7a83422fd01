import tensorflow as tf


def range(n):
    return [0] * n


def mean(x, axes):
    axes = map(int, axes)
    return tf.reduce_mean(x, axes), tf.reduce_max(x, range(2))
