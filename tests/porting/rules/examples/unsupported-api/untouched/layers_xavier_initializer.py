import tensorflow.contrib.layers as layers

x = layers.xavier_initializer()
