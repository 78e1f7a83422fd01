import tensorflow as tf
from npu_bridge.npu_init import NPUDistributedOptimizer, npu_config_proto

slim = tf.contrib.slim


def main(loss):
    train_op = slim.learning.create_train_op(loss, NPUDistributedOptimizer(tf.train.AdamOptimizer(1e-3)))
    slim.learning.train(train_op, 'logs', session_config=npu_config_proto())
