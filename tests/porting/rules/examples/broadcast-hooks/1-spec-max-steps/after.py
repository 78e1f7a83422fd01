import tensorflow as tf
from npu_bridge.npu_init import npu_hooks_append

spec = tf.estimator.TrainSpec(input_fn, max_steps=9, hooks=npu_hooks_append(hooks_list=[]))
