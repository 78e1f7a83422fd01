import tensorflow as tf

gradient = tf.clip_by_norm(gradient, 5.0)
