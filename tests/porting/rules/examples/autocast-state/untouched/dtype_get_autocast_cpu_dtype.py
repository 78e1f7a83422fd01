import torch

dtype = torch.get_autocast_cpu_dtype()
