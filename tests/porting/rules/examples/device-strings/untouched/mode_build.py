import torch

mode = 'cuda'
if mode == 'cuda':
    build(mode)
