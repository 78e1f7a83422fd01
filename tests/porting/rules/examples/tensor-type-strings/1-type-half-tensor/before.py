import torch

if x.type() == 'torch.cuda.HalfTensor':
    x = x.type("torch.cuda.FloatTensor")
