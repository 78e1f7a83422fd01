import tensorflow as tf


def strategy_for(gpus):
    if gpus > 1:
        return tf.contrib.distribute.MirroredStrategy(num_gpus=gpus)
    return None


strategy = strategy_for(8)
