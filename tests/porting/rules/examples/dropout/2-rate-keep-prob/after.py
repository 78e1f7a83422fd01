import tensorflow as tf
from npu_bridge.npu_init import npu_ops

x = npu_ops.dropout(x, keep_prob=1.0 - (1 - keep_prob))
