import tensorflow as tf

saver = tf.train.Saver()


def end(sess):
    saver.save(sess, 'model.ckpt')
