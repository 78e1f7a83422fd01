import tensorflow as tf

OPTIMIZERS = {'adam': tf.train.AdamOptimizer}
opt = OPTIMIZERS['adam'](lr)
