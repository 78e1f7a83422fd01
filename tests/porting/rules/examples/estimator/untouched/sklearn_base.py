from sklearn.base import Estimator

Estimator(config=1)
