import torch
from torch.cuda.amp import autocast, GradScaler

scaler = GradScaler()
