import tensorflow as tf

saver = tf.train.Saver(tf.all_variables())
session.run(tf.initialize_all_variables())
