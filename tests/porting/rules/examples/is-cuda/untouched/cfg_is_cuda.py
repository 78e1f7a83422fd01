import torch

print(cfg['is_cuda'])
