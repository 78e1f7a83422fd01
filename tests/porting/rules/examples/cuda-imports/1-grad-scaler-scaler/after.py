import torch
from torch_npu.npu.amp import autocast, GradScaler

scaler = GradScaler()
