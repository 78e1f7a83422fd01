import tensorflow as tf


def train_input_fn(files):
    return tf.data.TFRecordDataset(files)
