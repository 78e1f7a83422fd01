import tensorflow as tf

first = tf.nn.softmax_cross_entropy_with_logits(x, y)
second = tf.nn.sparse_softmax_cross_entropy_with_logits((x), labels)
third = tf.nn.sigmoid_cross_entropy_with_logits(x, targets=tf.ones_like(x))
