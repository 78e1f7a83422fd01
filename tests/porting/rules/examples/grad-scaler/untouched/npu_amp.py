import torch

scaler = torch.npu.amp.GradScaler(1024.0)
