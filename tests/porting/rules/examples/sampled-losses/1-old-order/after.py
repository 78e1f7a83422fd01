import tensorflow as tf

doubled = tf.multiply(hidden, 2.0)
first = tf.nn.nce_loss(weights, biases, inputs=tf.multiply(x, 2.0), labels=y, num_sampled=64, num_classes=5000)
second = tf.nn.sampled_softmax_loss(
    weights,
    biases,
    inputs=hidden,
    labels=tf.reshape(targets, [-1, 1]),  # one a row
    num_sampled=64,
    num_classes=5000,
)
third = tf.nn.ctc_loss(inputs=logits, labels=tf.sparse_placeholder(tf.int32), sequence_length=lengths)
