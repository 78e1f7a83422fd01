import torch

settings = {'device': 'cuda'}
