import tensorflow as tf

def options(sess_config):
    op = sess_config.graph_options.rewrite_options.custom_optimizers.add()
    op.name = 'NpuOptimizer'
    return sess_config
