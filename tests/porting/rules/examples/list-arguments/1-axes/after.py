import tensorflow as tf

top = tf.reduce_max(x, list(range(1, len(x.shape))), keep_dims=True)
total = tf.add_n(list(map(tf.nn.l2_loss, weights)))
turned = tf.transpose(x, perm=list(range(3)[::-1]))
picked = tf.gather(params=x, indices=list(range(tf.app.flags.FLAGS.rows)))
