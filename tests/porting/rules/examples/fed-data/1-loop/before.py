import tensorflow as tf
from models import train_op, x

with tf.Session() as sess:
    for batch in batches():
        sess.run(train_op, feed_dict={x: batch})
