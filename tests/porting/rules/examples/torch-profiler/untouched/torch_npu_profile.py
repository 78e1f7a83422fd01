import torch
import torch_npu

with torch_npu.profiler.profile():
    pass
