import torch

model = torch.compile(model)  # keras
