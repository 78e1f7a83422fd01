import tensorflow.contrib.slim as slim

x = slim.dropout(x, 0.5)
