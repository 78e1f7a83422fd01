import tensorflow as tf
from tensorflow.contrib.opt import MovingAverageOptimizer

opt = MovingAverageOptimizer(tf.train.AdamOptimizer(lr))
train_op = opt.minimize(loss)
saver = opt.swapping_saver()
