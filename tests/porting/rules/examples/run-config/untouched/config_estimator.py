import tensorflow as tf

def config():
    return tf.estimator.RunConfig()
