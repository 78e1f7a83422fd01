import tensorflow as tf


class Trainer(object):
    def train(self, x):
        return self.batch(x)

    def batch(self, x):
        return x
