import tensorflow as tf

saver = tf.train.Saver()
with tf.Session() as sess:
    saver.restore(sess, 'a.ckpt')
    saver.save(sess, 'b.ckpt')
