from mine import TPUEstimator

TPUEstimator(use_tpu=True)
