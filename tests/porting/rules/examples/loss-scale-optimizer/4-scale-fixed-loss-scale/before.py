import tensorflow as tf

scale = tf.train.experimental.FixedLossScale(loss_scale_value=8)
opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
    opt, scale)
