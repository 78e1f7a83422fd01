import torch

settings = {'backend': 'nccl'}
