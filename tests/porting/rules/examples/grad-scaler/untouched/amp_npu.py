import torch

scaler = torch.amp.GradScaler('npu')
