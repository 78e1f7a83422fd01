import tensorflow as tf


def train_data(x):
    return tf.data.Dataset.from_tensor_slices(x).batch(32, drop_remainder=False)
