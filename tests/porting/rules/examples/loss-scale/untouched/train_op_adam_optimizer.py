import tensorflow as tf

train_op = tf.train.AdamOptimizer(lr).minimize(loss)
