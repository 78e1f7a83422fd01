import tensorflow as tf


def main(loss):
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
    init = tf.global_variables_initializer()
    sv = tf.train.Supervisor(logdir='logs')
    with sv.managed_session() as sess:
        print(sess.run(loss))
        sess.run(init)
        sess.run(train_op)
