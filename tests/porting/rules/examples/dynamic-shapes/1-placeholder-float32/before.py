import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 28, 28], name='x')
y = tf.placeholder(tf.int64)
keep_prob = tf.placeholder(tf.float32, [])
is_training = tf.placeholder(tf.bool, name='is_training')
