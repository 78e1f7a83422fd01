import tensorflow as tf

train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)


class Trainer:
    def save(self, sess):
        tf.train.Saver().save(sess, 'model')

    def end(self, sess, rank):
        if rank != 0:
            return
        self.save(sess)

    def run(self, sess, rank):
        if rank == 0:
            self.save(sess)
