from tensorflow.data import Dataset


def input_fn(x, is_training):
    ds = Dataset.from_tensor_slices(x)
    if is_training:
        ds = ds.repeat(3)
    return ds.batch(batch_size=32, drop_remainder=is_training)
