import tensorflow as tf


def sampled(inputs, labels):
    return tf.nn.sampled_softmax_loss(weights, biases, labels=labels, inputs=inputs, **sizes)


chosen = None
if samples:
    chosen = sampled
loss = tf.contrib.legacy_seq2seq.sequence_loss(x, y, ones, softmax_loss_function=chosen)
