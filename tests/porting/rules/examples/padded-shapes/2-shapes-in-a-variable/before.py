import tensorflow as tf

ds = tf.data.TFRecordDataset("a").map(parse)
shapes = ([32, 32, 3], [None, 4])
ds = ds.apply(tf.contrib.data.padded_batch_and_drop_remainder(8, shapes))
