import tensorflow as tf

def make():
    sess = tf.Session()
    return sess
