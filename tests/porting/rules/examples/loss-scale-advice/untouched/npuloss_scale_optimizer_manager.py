import tensorflow as tf
from npu_bridge.npu_init import *

opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(lr), manager)
