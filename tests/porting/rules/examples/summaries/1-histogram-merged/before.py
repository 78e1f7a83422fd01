import tensorflow as tf

tf.summary.scalar('loss', loss)
tf.summary.histogram('w', w)
merged = tf.summary.merge_all()
