import tensorflow as tf

step = tf.cond(update, lambda: opt.minimize(loss), lambda: tf.no_op())
