import torch
import torch_npu

if x.is_npu:
    y = torch.zeros(3)
