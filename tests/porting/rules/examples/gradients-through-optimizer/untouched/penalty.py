import tensorflow as tf

slopes = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(d, x)[0])))
loss = loss + 10 * slopes
mean = moving.assign(0.9 * moving)
