import torch

torch.backends.cudnn.benchmark = True  # faster
x = 1
