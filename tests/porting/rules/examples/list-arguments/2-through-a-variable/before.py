import tensorflow as tf


def normalized(x):
    axes = range(len(x.get_shape()) - 1)
    mean, variance = tf.nn.moments(x, axes)
    return tf.reduce_mean(x, axis=axes), mean, variance
