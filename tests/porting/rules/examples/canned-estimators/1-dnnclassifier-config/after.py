import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

model = tf.estimator.DNNClassifier([8], columns, config=npu_run_config_init(run_config=rc))
