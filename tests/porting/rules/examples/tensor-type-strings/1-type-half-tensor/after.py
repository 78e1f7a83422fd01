import torch
import torch_npu

if x.type() == 'torch.npu.HalfTensor':
    x = x.type("torch.npu.FloatTensor")
