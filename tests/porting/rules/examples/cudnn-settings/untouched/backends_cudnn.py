import torch

benchmark = torch.backends.cudnn.benchmark
