import tensorflow as tf


def session_options(threads):
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    return config
