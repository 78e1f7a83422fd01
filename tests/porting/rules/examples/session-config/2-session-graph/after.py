from tensorflow import Session as S
from npu_bridge.npu_init import npu_config_proto

sess = S('', graph, npu_config_proto(config_proto=config))
