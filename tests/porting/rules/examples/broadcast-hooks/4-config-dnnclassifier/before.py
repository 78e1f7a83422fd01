import tensorflow as tf
from npu_bridge.npu_init import npu_run_config_init

def train(config):
    model = tf.estimator.DNNClassifier([8], columns, config=npu_run_config_init(config))
    model.train(input_fn, steps=9, hooks=[log])
