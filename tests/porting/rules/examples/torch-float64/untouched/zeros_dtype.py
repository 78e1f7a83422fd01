import torch

x = torch.zeros(3, dtype=torch.float32)
