import tensorflow as tf

sess = tf.Session()
with sess:
    pass
