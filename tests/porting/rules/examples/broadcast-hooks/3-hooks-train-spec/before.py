import tensorflow as tf

def train(hooks=None):
    return tf.estimator.TrainSpec(input_fn, hooks=hooks)
