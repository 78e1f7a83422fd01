class Estimator(object):
    pass

Estimator()
