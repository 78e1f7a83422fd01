import torch

scaler = torch.cuda.amp.GradScaler(1024.0, 2.0, 0.5, 2000, on)
