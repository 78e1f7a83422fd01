import tensorflow as tf
from npu_bridge.npu_init import *

tf.estimator.Estimator(model_fn, config=npu_run_config_init(run_config=config))
