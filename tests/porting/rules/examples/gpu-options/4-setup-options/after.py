import tensorflow as tf

def setup(config):
    if share:
        pass
    return tf.ConfigProto()
