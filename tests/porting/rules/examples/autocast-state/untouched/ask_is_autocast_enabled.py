import torch

ask = torch.is_autocast_enabled
ask()
