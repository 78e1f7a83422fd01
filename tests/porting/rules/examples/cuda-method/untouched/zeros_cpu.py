import torch

x = torch.zeros(3).to('cpu')
