import tensorflow as tf

first = tf.nn.softmax_cross_entropy_with_logits(logits=x, labels=y)
second = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=(x), labels=labels)
third = tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=tf.ones_like(x))
