import tensorflow as tf

x = tf.pack([tf.mul(a, b), tf.sub(a, tf.neg(b))])
rows = tf.unpack(x)
chosen = tf.select(mask, x, y)
product = tf.batch_matmul(x, y, adj_y=True)
outputs, state = tf.nn.rnn(cell, rows, dtype=tf.float32)
loss = tf.nn.seq2seq.sequence_loss_by_example([logits], [targets], [weights])
