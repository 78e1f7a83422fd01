import numpy as np
import tensorflow as tf

x = tf.concat([a, b], 1)
y = tf.concat([a, b], axis)
z = tf.concat(values=rows, axis=0)
w = tf.concat(rows, dim)
v = tf.concat(rows, columns)
i, j = tf.split(x, 2, 1)
k, l = tf.split(x, axis=0, num_or_size_splits=2)
m = np.concatenate(1, [a, b])
