import torch

isinstance(model, torch.nn.DataParallel)
