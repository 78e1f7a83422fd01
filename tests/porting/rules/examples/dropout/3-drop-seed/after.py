from tensorflow.nn import dropout as drop
from npu_bridge.npu_init import npu_ops

x = npu_ops.dropout(npu_ops.dropout(x, keep_prob=k, seed=7), keep_prob=1.0 - (a - b), name='last')
