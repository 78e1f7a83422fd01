import tensorflow as tf
from npu_bridge.npu_init import *

opt = npu_tf_optimizer(tf.train.AdamOptimizer(lr))
