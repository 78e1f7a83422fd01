import torch

torch.profiler.profile()
