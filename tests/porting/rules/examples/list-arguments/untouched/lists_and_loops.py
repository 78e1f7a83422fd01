import numpy as np
import tensorflow as tf

axes = range(2)
axes = [0, 1]
top = tf.reduce_max(x, axes)
low = tf.reduce_min(x, list(range(2)))
numbers = tf.range(3)
group = tf.group(*map(tf.identity, parts))
step = optimizer.apply_gradients(zip(gradients, variables))
rows = np.take(x, range(2))
tf.logging.info("%s", range(2))
for i in range(3):
    x = tf.add(x, i)
pairs = zip(gradients, variables)
first = next(pairs)
rest = tf.stack(pairs)
last = tf.gather(x, range(3)[-1])
