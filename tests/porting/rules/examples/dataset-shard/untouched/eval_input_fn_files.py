import tensorflow as tf


def eval_input_fn(files):
    return tf.data.TFRecordDataset(files)
