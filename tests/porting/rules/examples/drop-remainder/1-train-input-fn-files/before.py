import tensorflow as tf


def train_input_fn(files):
    ds = tf.data.TFRecordDataset(files)
    return ds.shuffle(100).batch(32)
