import tensorflow as tf

if use_tpu:
    opt = tf.contrib.tpu.CrossShardOptimizer(opt)
