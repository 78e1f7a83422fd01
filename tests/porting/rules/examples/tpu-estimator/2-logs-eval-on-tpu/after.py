from tensorflow.estimator.tpu import TPUEstimator
from npu_bridge.npu_init import npu_run_config_init

TPUEstimator(model_fn, logs, npu_run_config_init(run_config=rc), {}, False, eval_on_tpu=False, export_to_tpu=False)
