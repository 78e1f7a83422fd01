import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

estimator = tf.keras.estimator.model_to_estimator(model, config=npu_run_config_init())
