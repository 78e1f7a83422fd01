import tensorflow as tf

words = tf.placeholder(tf.int32, [128])
context = tf.placeholder(tf.int32, [128, 1])
looked_up = tf.nn.embedding_lookup(table, words)
loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, inputs=looked_up, labels=context, num_sampled=64, num_classes=5000))
