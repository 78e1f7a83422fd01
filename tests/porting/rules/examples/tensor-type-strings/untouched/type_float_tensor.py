import torch

x.type('torch.FloatTensor')
