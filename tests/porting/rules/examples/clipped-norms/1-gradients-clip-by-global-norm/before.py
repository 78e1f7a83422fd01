import tensorflow as tf

gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
