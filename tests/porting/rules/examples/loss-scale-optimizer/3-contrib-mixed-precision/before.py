from tensorflow.contrib.mixed_precision import LossScaleOptimizer

opt = LossScaleOptimizer(opt, manager)
