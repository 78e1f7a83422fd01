import torch

torch.set_autocast_enabled(False)
torch.set_autocast_gpu_dtype(dtype)
