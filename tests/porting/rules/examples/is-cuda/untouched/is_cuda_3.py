import torch

is_cuda = True
print(is_cuda)
