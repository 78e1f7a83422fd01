import tensorflow as tf

first = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)
second = tf.nn.sigmoid_cross_entropy_with_logits(None, y, x)
third = tf.losses.sparse_softmax_cross_entropy(y, x)
fourth = tf.nn.softmax_cross_entropy_with_logits(*pair)
