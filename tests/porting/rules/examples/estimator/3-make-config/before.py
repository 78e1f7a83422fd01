import tensorflow as tf

def make(config=None):
    return tf.estimator.Estimator(model_fn, config=config)
