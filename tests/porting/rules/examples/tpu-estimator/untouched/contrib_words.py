import tensorflow as tf

tf.contrib.tpu.TPUEstimator(**words)
