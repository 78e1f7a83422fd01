import tensorflow as tf

opt = tf.train.AdamOptimizer(1e-3)
opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, loss_scale="dynamic")
train_op = opt.minimize(loss)
