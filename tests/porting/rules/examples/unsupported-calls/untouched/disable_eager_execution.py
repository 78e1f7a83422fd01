import tensorflow as tf

tf.disable_eager_execution()
