import torch

ACCELERATORS = ('cpu', 'gpu', 'cuda', 'auto')
