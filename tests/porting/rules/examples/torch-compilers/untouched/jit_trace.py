import torch

torch.jit.trace(model, x)
