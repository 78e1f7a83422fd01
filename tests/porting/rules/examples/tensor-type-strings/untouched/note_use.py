import torch

note = 'use torch.cuda.FloatTensor here'
