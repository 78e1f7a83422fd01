import tensorflow as tf

joined = tf.concat(axis=1, values=[x, tf.concat(axis=-1, values=[y, z], name="inner")])
rows = tf.concat(axis=0, values=rows)
pair = tf.concat(axis=last, values=[x, y])
more = tf.concat(
    axis=axis,  # counted from 0
    values=parts)
i, j = tf.split(axis=1, num_or_size_splits=2, value=joined)
k, l = tf.split(axis=0, num_or_size_splits=2, value=joined)
m, n = tf.split(axis=axis, num_or_size_splits=2, value=joined)
sparse = tf.SparseTensor(indices, values, dense_shape=[3, 4])
