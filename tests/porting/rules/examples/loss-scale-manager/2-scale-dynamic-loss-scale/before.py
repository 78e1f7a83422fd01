import tensorflow as tf

scale = tf.train.experimental.DynamicLossScale()
