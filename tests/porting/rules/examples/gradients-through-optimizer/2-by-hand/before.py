import tensorflow as tf

gradients = tf.gradients(loss, weights)
updates = []
for gradient, weight in zip(gradients, weights):
    updates.append(tf.assign(weight, weight - 0.1 * gradient))
