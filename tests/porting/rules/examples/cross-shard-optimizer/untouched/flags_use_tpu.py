import tensorflow as tf

opt = tf.contrib.tpu.CrossShardOptimizer(opt) if FLAGS.use_tpu else opt
