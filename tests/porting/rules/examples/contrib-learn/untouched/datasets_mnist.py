import tensorflow as tf

tf.contrib.learn.datasets.mnist.load_mnist()
