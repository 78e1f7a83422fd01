import torch

opt = torch.optim.Adam(params)
opt.minimize(loss)
