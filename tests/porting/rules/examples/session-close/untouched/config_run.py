import tensorflow as tf

sess = tf.Session(config=config)
sess.run(op)
sess.close()
