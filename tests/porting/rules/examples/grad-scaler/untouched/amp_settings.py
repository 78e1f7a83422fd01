import torch

scaler = torch.amp.GradScaler(**settings)
