from mylib import LossScaleOptimizer  # not tensorflow

LossScaleOptimizer(opt, 8)
