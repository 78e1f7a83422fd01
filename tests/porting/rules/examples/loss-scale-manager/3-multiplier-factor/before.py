from tensorflow.train.experimental import DynamicLossScale

scale = DynamicLossScale(2 ** 10, multiplier=factor + 1)
