import tensorflow as tf

print(tf.contrib.tpu.TPUEstimator)
