class TPUEstimator(object):
    pass

TPUEstimator()
