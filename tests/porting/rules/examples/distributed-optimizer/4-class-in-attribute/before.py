import tensorflow as tf


class Trainer:
    def __init__(self, rate):
        self.optimizer = tf.train.AdamOptimizer
        self.rate = rate

    def build(self, loss):
        optimizer = self.optimizer(self.rate)
        self.step = optimizer.minimize(loss)
