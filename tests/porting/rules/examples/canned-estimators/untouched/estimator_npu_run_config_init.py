import tensorflow as tf
from npu_bridge.npu_init import *

tf.estimator.DNNClassifier([8], columns, config=npu_run_config_init())
