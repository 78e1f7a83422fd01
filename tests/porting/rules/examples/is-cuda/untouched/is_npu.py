import torch

print(x.is_npu)
