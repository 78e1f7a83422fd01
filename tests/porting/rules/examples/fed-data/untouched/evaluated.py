import tensorflow as tf
from models import predictions, x


def evaluate(sess):
    for batch in batches():
        sess.run(predictions, feed_dict={x: batch})
