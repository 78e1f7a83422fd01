import torch

table = torch.nn.Embedding(9, 3, sparse=False)
