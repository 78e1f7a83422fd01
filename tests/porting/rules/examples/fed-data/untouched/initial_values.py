import tensorflow as tf
from models import init_op, train_op, x

with tf.Session() as sess:
    for value in values():
        sess.run(init_op, feed_dict={x: value})
    for _ in range(10):
        sess.run(train_op)
