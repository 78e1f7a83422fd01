import tensorflow as tf

with tf.Session() as sess:
    pass
