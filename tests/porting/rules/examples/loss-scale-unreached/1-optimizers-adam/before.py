import tensorflow as tf

OPTIMIZERS = {'adam': tf.train.AdamOptimizer}


def optimizer(name, rate):
    return create(OPTIMIZERS, name, rate)
