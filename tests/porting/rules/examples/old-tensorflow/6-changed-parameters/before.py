import tensorflow as tf

tf.scalar_summary(["loss", "rate"], losses)
tf.histogram_summary("w", w, name="of_weights")
tf.batch_matmul(x, y, True, False)
s, u, v = tf.batch_svd(x)
