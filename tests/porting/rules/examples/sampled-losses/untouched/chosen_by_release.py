import tensorflow as tf

if tf.__version__ < "1.0":
    loss = tf.nn.nce_loss(weights, biases, hidden, labels, 64, 5000)
else:
    loss = tf.nn.nce_loss(weights, biases, labels, hidden, 64, 5000)
