import tensorflow as tf

coord = tf.train.Coordinator()
