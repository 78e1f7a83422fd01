import tensorflow as tf

opt = tf.train.AdamOptimizer(lr)
grads = tf.gradients(loss, tvars)
opt.apply_gradients(zip(grads, tvars))
