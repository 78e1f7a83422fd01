import tensorflow as tf

tf.contrib.tpu.TPUConfig(num_shards=8)
