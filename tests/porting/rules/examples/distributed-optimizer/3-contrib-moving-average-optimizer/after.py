import tensorflow as tf
from tensorflow.contrib.opt import MovingAverageOptimizer
from npu_bridge.npu_init import npu_distributed_optimizer_wrapper

opt = npu_distributed_optimizer_wrapper(MovingAverageOptimizer(tf.train.AdamOptimizer(lr)))
train_op = opt.minimize(loss)
saver = opt.swapping_saver()
