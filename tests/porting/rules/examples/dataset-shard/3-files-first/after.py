import tensorflow as tf
import os


def train_input_fn(pattern):
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    ds = tf.data.TFRecordDataset(files).shard(int(os.getenv("RANK_SIZE", "1")), int(os.getenv("RANK_ID", "0")))
    return ds.repeat().shuffle(9).batch(8, drop_remainder=True)
