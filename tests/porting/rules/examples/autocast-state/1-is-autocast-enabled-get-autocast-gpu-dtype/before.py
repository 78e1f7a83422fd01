import torch

if torch.is_autocast_enabled():
    dtype = torch.get_autocast_gpu_dtype()
