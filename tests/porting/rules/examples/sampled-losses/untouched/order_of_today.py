import tensorflow as tf

first = tf.nn.nce_loss(weights, biases, labels, hidden, 64, 5000)
second = tf.nn.nce_loss(weights, biases, inputs=a, labels=b, num_sampled=64, num_classes=5000)
third = tf.nn.ctc_loss(targets, logits, lengths)
fourth = tf.nn.nce_loss(weights, biases, a, inputs=b, num_sampled=64, num_classes=5000)
