import torch
import torch_npu

scaler = torch.amp.GradScaler(device='npu')
