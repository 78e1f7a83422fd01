import tensorflow as tf
from npu_bridge.npu_init import npu_distributed_optimizer_wrapper

compression = None if fp16 else None
opt = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(lr))
