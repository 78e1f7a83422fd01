import tensorflow as tf

doubled = tf.mul(hidden, 2.0)
first = tf.nn.nce_loss(weights, biases, tf.mul(x, 2.0), y, 64, 5000)
second = tf.nn.sampled_softmax_loss(
    weights,
    biases,
    hidden,
    tf.reshape(targets, [-1, 1]),  # one a row
    num_sampled=64,
    num_classes=5000,
)
third = tf.nn.ctc_loss(logits, tf.sparse_placeholder(tf.int32), lengths)
