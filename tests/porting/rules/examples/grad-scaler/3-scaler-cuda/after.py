import torch
import torch_npu

scaler = torch.npu.amp.GradScaler(1024.0, 2.0, 0.5, 2000, enabled=on)
