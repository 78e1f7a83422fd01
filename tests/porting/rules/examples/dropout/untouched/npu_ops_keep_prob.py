import tensorflow as tf
from npu_bridge.npu_init import *

x = npu_ops.dropout(x, keep_prob=0.5)
