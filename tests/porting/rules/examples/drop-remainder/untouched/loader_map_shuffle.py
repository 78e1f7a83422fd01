import tensorflow as tf


def load(records, is_training):
    records = records.map(parse)
    records.shuffle(seed=3)
    return records.batch(32)
