import torch

scaler = torch.amp.GradScaler(device=device)
