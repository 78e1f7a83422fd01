import tensorflow as tf

opt = (tf.train.AdamOptimizer(0.1))
