import torch

opt = torch.optim.lr_scheduler.StepLR(opt, 1)
