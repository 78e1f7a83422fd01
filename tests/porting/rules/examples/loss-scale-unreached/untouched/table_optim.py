import torch

TABLE = {'adam': torch.optim.Adam}  # not tf
