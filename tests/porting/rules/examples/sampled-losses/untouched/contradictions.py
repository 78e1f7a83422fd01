import tensorflow as tf

doubled = tf.mul(hidden, 2.0)
first = tf.nn.nce_loss(weights, biases, labels, hidden, 64, 5000)
second = tf.nn.nce_loss(weights, biases, *both)
third = tf.nn.nce_loss(weights, biases, old_labels, new_labels, 64, 5000)
