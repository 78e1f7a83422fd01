import tensorflow as tf


def options():
    return tf.ConfigProto(allow_soft_placement=True)


def run(op):
    with tf.Session(config=options()) as sess:
        sess.run(op)
