import tensorflow as tf

opt = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
