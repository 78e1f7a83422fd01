import tensorflow as tf

opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
