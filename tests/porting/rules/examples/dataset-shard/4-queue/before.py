import tensorflow as tf


def train_inputs(files):
    return tf.train.string_input_producer(files, shuffle=True)
