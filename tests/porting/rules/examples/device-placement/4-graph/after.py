import tensorflow as tf

graph = tf.Graph()
with graph.device('/cpu:0'):
    x = 1
for name in ('/gpu:0', '/gpu:1'):
    with tf.device('/cpu:0'):
        x = 2
