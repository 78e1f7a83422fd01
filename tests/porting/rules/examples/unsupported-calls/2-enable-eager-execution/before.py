import tensorflow as tf

tf.enable_eager_execution()
