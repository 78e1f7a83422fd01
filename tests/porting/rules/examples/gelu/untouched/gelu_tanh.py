import tensorflow as tf


def gelu(x):
    return 0.5 * x * (1 + tf.tanh(0.8 * (x + 0.044715 * x ** 3)))
