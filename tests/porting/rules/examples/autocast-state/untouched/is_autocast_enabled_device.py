import torch

on = torch.is_autocast_enabled(device)
