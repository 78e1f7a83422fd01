import tensorflow as tf

graph = tf.Graph()
with graph.device('/gpu:0' if gpu else '/cpu:0'):
    x = 1
for name in ('/gpu:0', '/gpu:1'):
    with tf.device(name):
        x = 2
