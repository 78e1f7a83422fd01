import tensorflow as tf
from models import build


def main():
    train_op = build()
    sv = tf.train.Supervisor(logdir='logs')
    with sv.managed_session() as sess:
        while not sv.should_stop():
            sess.run(train_op)
