"""The implementation of the stand-ins `npu_bridge` and `hccl`, without a real counterpart.

`option_table`, `option_checks`, `record` and `ranks` do not need TensorFlow.
"""
