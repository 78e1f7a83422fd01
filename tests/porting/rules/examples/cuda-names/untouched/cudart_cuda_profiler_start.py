import torch

torch.cuda.cudart().cudaProfilerStart()
