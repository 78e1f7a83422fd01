import tensorflow as tf

y = tf.xla.experimental.compile(f, [x])
