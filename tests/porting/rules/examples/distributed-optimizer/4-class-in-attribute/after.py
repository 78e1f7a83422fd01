import tensorflow as tf
from npu_bridge.npu_init import NPUDistributedOptimizer


class Trainer:
    def __init__(self, rate):
        self.optimizer = tf.train.AdamOptimizer
        self.rate = rate

    def build(self, loss):
        optimizer = NPUDistributedOptimizer(self.optimizer(self.rate))
        self.step = optimizer.minimize(loss)
