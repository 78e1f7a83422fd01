import torch

x = torch.zeros(3, dtype=torch.float64)
y = x.double()
