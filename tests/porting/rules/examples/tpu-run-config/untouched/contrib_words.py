import tensorflow as tf

tf.contrib.tpu.RunConfig(**words)
