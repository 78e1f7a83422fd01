import tensorflow.compat.v1 as tf


def input_fn(mode, n):
  ds = tf.data.TextLineDataset('a.txt')
  ds = ds.apply(tf.contrib.data.map_and_batch(parse, n))
  if mode == tf.estimator.ModeKeys.TRAIN:
    ds = ds.repeat()
  return ds
