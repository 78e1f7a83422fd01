import tensorflow as tf

tf.reset_default_graph()
