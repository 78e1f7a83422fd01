import torch

if hasattr(torch, 'cuda'):
    pass
