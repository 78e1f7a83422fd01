class OptimizerOptions(object):
    ON_1 = 1

level = OptimizerOptions.ON_1
