class DynamicLossScale(object):
    pass

DynamicLossScale()  # of tf
