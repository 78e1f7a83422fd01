import torch

opt = torch.optim.Adam(model.parameters())  # not tf
