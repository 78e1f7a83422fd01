import torch

if x.is_cuda:
    y = torch.zeros(3)
