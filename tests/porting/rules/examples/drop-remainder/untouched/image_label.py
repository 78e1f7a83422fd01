import tensorflow as tf


def train():
    return tf.train.batch([image, label], 32)
