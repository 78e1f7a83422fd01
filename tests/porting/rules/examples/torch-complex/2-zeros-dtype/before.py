import torch

z = torch.zeros(3, dtype=torch.complex64)
