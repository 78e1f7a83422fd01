import tensorflow as tf

manager = tf.contrib.mixed_precision.FixedLossScaleManager(
    128)
