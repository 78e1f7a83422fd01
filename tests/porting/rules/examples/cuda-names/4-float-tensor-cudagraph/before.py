import torch

x = torch.cuda.FloatTensor(3)
g = torch.cuda.CUDAGraph()
