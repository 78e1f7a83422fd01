import tensorflow as tf

ok = tf.reduce_all(tf.is_finite(grad))
