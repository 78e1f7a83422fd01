import tensorflow as tf
from models import train_op

with tf.Session() as sess:
    for _ in range(10):
        sess.run(train_op)
