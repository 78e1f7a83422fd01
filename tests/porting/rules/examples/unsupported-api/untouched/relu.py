import tensorflow as tf

x = tf.nn.relu(x)
