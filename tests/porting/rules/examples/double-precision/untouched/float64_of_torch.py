import torch

x = x.to(torch.float64)  # not tf
