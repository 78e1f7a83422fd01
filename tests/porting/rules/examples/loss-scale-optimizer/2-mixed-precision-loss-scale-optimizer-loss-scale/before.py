import tensorflow as tf

opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, loss_scale=128)
