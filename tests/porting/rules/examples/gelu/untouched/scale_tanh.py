import tensorflow as tf


def gelu(x, scale):
    return scale * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))
