import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2 as rw

options = rw.RewriterConfig(
                            remapping=rw.RewriterConfig.OFF)
