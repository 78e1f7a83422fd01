import torch

if x.is_cuda or x.is_npu:
    pass
