import torch

for name in ('model', 'cuda'):
    pass
