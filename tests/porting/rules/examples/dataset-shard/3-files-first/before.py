import tensorflow as tf


def train_input_fn(pattern):
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    ds = tf.data.TFRecordDataset(files)
    return ds.repeat().shuffle(9).batch(8, drop_remainder=True)
