import tensorflow as tf

def batched(records, is_training, size):
    records = records.map(parse, num_parallel_calls=4)
    if is_training:
        records = records.shuffle(1000)
    records = records.batch(size, drop_remainder=is_training)
    return records.prefetch(1)
