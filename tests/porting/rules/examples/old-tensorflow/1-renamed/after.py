import tensorflow as tf

x = tf.stack([tf.multiply(a, b), tf.subtract(a, tf.negative(b))])
rows = tf.unstack(x)
chosen = tf.where(mask, x, y)
product = tf.matmul(x, y, adjoint_b=True)
outputs, state = tf.nn.static_rnn(cell, rows, dtype=tf.float32)
loss = tf.contrib.legacy_seq2seq.sequence_loss_by_example([logits], [targets], [weights])
