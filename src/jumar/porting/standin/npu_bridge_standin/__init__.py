"""What the stand-ins `npu_bridge` and `hccl` are made of; the real packages have no such module.

`option_table` and `option_checks`, `record` and `ranks` need no TensorFlow.
"""
