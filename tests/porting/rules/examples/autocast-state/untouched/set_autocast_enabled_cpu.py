import torch

torch.set_autocast_enabled('cpu', True)
