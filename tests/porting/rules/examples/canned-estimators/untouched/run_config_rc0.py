import tensorflow as tf
from npu_bridge.npu_init import *

rc = npu_run_config_init(run_config=rc0)
tf.estimator.DNNClassifier([8], columns, config=rc)
