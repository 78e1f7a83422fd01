from mxnet import amp  # not tensorflow

scale = amp.DynamicLossScale()
