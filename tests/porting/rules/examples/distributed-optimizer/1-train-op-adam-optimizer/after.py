import tensorflow as tf
from npu_bridge.npu_init import NPUDistributedOptimizer

train_op = NPUDistributedOptimizer(tf.train.AdamOptimizer(lr)).minimize(loss)
