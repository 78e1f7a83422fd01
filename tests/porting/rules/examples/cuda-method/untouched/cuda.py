import torch

def cuda(x):
    return x

y = cuda(1)
