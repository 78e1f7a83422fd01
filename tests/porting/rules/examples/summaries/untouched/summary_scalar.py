import mine as tf

tf.summary.scalar('loss', 1)
