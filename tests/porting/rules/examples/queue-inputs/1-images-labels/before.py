import tensorflow as tf

images, labels = tf.train.shuffle_batch([image, label], 32, 2000, 1000)
