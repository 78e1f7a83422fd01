import torch

opt = torch.optim.AdamW(parameters)
