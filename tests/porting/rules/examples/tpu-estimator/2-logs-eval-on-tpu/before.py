from tensorflow.estimator.tpu import TPUEstimator

TPUEstimator(model_fn, logs, rc, {}, True, eval_on_tpu=False)
