from tensorflow.core.protobuf import config_pb2 as pb

options = pb.OptimizerOptions(global_jit_level=pb.OptimizerOptions.OFF)
config.graph_options.optimizer_options.global_jit_level = -1
