import tensorflow as tf

data = tf.data.TFRecordDataset(files)
