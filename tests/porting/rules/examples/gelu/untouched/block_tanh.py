import tensorflow as tf


class Block(object):
    def gelu(self, x):
        return 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))
