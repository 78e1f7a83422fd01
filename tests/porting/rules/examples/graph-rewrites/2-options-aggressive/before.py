import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2 as rw

options = rw.RewriterConfig(auto_mixed_precision=rw.RewriterConfig.ON,
                            remapping=rw.RewriterConfig.AGGRESSIVE)
config.graph_options.rewrite_options.auto_mixed_precision = 1
