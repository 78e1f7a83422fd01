import tensorflow as tf


def train_input_fn(files):
    return tf.data.Dataset.list_files(files).repeat()
