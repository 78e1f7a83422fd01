import tensorflow as tf
import os
from npu_bridge.npu_init import npu_allreduce

loss = (lambda value: npu_allreduce(value, reduction="mean") if int(os.getenv("RANK_SIZE", "1")) > 1 else value)(tf.reduce_mean(x))
