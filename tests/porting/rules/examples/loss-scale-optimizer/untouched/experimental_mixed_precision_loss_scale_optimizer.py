import tensorflow as tf

opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, FLAGS.scale)
