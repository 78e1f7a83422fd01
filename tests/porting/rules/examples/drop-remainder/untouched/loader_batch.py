import tensorflow as tf


def train(loader):
    return loader.batch(32)
