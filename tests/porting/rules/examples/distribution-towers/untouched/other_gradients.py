import tensorflow as tf


def clipped_gradients(pairs):
    gradients, variables = zip(*pairs)
    return zip(tf.clip_by_global_norm(gradients, 1.0)[0], variables)


def mean_gradient(pairs):
    gradients, _ = zip(*compute(pairs))
    return tf.add_n([tf.reduce_mean(gradient) for gradient in gradients])
