import tensorflow as tf

config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
