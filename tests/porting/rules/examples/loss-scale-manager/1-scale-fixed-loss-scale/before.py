import tensorflow as tf

scale = tf.train.experimental.FixedLossScale(128)
