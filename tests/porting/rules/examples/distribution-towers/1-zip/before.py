import tensorflow as tf


def average_gradients(towers):
    averages = []
    for of_one in zip(*towers):
        gradient = tf.reduce_mean(tf.stack([gradient for gradient, _ in of_one]), 0)
        averages.append((gradient, of_one[0][1]))
    return averages
