import torch

x.type('torch.npu.FloatTensor')
