import torch

torch.ops.load_library('a.so')  # not tf
