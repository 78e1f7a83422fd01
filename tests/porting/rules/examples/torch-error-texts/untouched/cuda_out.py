import torch

print('CUDA out of memory')
