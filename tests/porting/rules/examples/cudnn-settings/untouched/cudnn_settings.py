import torch

cudnn = settings
cudnn.benchmark = True
