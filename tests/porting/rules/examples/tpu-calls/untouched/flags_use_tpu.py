import tensorflow as tf

if FLAGS.use_tpu and FLAGS.name:
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(name)
