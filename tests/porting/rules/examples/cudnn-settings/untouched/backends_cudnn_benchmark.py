import torch

a = torch.backends.cudnn.benchmark = True
