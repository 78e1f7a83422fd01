import torch

model = torch.nn.DataParallel(model)
