import torch

x = torch.sparse_coo_tensor(i, v, (3, 3))
y = x.to_sparse()
