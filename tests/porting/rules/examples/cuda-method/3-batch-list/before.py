import torch

batch = list(map(torch.Tensor.cuda, batch))
