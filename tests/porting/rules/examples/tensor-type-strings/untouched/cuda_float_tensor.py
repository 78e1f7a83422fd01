import torch

print('torch.cuda.FloatTensor')
