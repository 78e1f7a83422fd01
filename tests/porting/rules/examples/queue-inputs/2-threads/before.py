import threading

import tensorflow as tf


def fill(sess, coord, enqueue):
    while not coord.should_stop():
        sess.run(enqueue)


coord = tf.train.Coordinator()
thread = threading.Thread(target=fill, args=(sess, coord, net.enqueue))
