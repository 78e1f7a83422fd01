import tensorflow as tf
import os
from npu_bridge.npu_init import NPUBroadcastGlobalVariablesHook, npu_distributed_optimizer_wrapper

opt = tf.train.AdagradOptimizer(0.01)
opt = npu_distributed_optimizer_wrapper(opt)
train_op = opt.minimize(loss)
hooks = [NPUBroadcastGlobalVariablesHook(0, int(os.getenv("RANK_ID", "0")))]
