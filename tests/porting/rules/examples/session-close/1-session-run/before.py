import tensorflow as tf

sess = tf.Session()
sess.run(op)
