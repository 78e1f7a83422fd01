import torch

self.is_cuda = True
print(self.is_cuda)
