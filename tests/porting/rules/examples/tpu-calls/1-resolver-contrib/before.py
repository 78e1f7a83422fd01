import tensorflow as tf

resolver = tf.contrib.cluster_resolver.TPUClusterResolver(name)
