import tensorflow as tf

def setup(config):
    return tf.ConfigProto()
