import tensorflow as tf

ds = tf.data.Dataset.range(5).apply(
    tf.contrib.data.batch_and_drop_remainder(2))
