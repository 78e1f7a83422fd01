import torch

@torch.jit.script
def f(x):
    return x
