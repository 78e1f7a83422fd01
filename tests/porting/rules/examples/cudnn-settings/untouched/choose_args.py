import torch

torch.backends.cudnn.benchmark = choose(args)
