import tensorflow as tf

slim = tf.contrib.slim


def main(loss):
    train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(1e-3))
    slim.learning.train(train_op, 'logs')
