import tensorflow as tf


def train(x, drop):
    return tf.data.Dataset.from_tensor_slices(x).batch(32, drop)
