import tensorflow as tf

config.graph_options.optimizer_options.global_jit_level = (
    tf.OptimizerOptions.ON_1)
