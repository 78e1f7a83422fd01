import tensorflow as tf

tf.config.experimental.enable_tensor_float_32_execution(False)
