import tensorflow as tf

v = tf.get_variable('v', [3])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    tf.train.Saver().save(sess, 'model')
