import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

estimator = tf.contrib.tpu.TPUEstimator(
    use_tpu=False,
    model_fn=model_fn,
    config=npu_run_config_init(run_config=rc),
    train_batch_size=8,
    eval_on_tpu=False,
    export_to_tpu=False)
