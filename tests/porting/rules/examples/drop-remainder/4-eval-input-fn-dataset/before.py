import tensorflow as tf


def eval_input_fn(x):
    return tf.data.Dataset.from_tensor_slices(x).batch(32)
