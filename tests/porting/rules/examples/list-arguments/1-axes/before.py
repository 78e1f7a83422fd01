import tensorflow as tf

top = tf.reduce_max(x, range(1, len(x.shape)), keep_dims=True)
total = tf.add_n(map(tf.nn.l2_loss, weights))
turned = tf.transpose(x, perm=range(3)[::-1])
picked = tf.gather(params=x, indices=range(tf.app.flags.FLAGS.rows))
