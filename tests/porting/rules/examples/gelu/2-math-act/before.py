import math
import tensorflow as tf


def act(t):
    return 0.5 * t * (1 + tf.nn.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t ** 3)))
