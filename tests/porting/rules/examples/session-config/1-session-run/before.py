import tensorflow as tf

with tf.Session() as sess:
    sess.run(op)
