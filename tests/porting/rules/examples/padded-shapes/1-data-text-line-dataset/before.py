import tensorflow as tf

ds = tf.data.TextLineDataset('a').map(split)
ds = ds.padded_batch(8, padded_shapes=[None], drop_remainder=True)
