import tensorflow as tf

loss = tf.nn.nce_loss(weights, biases, first, second, 64, 5000)
