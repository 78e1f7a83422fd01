import tensorflow as tf
from npu_bridge.npu_init import npu_ops

x = npu_ops.dropout(x, k, [n, 1, 1], 3)  # whole rows
