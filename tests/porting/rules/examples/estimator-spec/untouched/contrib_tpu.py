import tensorflow as tf

tf.contrib.tpu.TPUEstimatorSpec(mode, scaffold_fn=f)
