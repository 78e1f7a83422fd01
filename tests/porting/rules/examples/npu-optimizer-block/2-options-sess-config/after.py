import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

def options(sess_config):
    op = sess_config.graph_options.rewrite_options.custom_optimizers.add()
    op.name = 'NpuOptimizer'
    sess_config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    sess_config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
    return sess_config
