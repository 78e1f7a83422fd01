import tensorflow as tf

def setup(config):
    if share:
        config.gpu_options.allow_growth = True
    options = tf.GPUOptions()
    options.allow_growth = True
    return tf.ConfigProto(gpu_options=options)
