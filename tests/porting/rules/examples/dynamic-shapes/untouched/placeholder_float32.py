import tensorflow as tf

x = tf.placeholder(tf.float32, [8, 28, 28])
