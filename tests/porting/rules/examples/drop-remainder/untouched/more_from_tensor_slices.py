import tensorflow as tf


def train(x, **more):
    return tf.data.Dataset.from_tensor_slices(x).batch(32, **more)
