import tensorflow as tf

words = tf.placeholder(tf.int32, [128])
context = tf.placeholder(tf.int32, [128, 1])
looked_up = tf.nn.embedding_lookup(table, words)
loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, looked_up, context, 64, 5000))
