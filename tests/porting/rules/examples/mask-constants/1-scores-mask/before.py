import tensorflow as tf

scores += (1.0 - mask) * -1e9
weights = tf.nn.softmax(scores)
