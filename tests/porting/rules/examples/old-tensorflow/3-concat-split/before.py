import tensorflow as tf

joined = tf.concat(1, [x, tf.concat(-1, [y, z], name="inner")])
rows = tf.concat(concat_dim=0, values=rows)
pair = tf.concat(last, [x, y])
more = tf.concat(
    axis,  # counted from 0
    parts)
i, j = tf.split(1, 2, joined)
k, l = tf.split(split_dim=0, num_split=2, value=joined)
m, n = tf.split(axis, 2, joined)
sparse = tf.SparseTensor(indices, values, shape=[3, 4])
