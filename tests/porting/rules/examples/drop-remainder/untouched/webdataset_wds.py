import webdataset as wds  # tf


def train():
    return wds.WebDataset('a').batch(32)
