import tensorflow as tf

tf.config.optimizer.set_jit(False)
