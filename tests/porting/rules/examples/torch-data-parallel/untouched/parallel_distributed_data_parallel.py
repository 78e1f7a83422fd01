import torch

model = torch.nn.parallel.DistributedDataParallel(model)
