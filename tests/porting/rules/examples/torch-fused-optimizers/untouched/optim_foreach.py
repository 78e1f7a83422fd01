import torch

opt = torch.optim.AdamW(parameters, fused=False, foreach=False)
