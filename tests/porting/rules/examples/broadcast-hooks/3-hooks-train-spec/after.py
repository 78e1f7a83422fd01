import tensorflow as tf
from npu_bridge.npu_init import npu_hooks_append

def train(hooks=None):
    return tf.estimator.TrainSpec(input_fn, hooks=npu_hooks_append(hooks_list=list(hooks or ())))
