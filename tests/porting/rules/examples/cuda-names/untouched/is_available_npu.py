import torch

if torch.cuda.is_available():
    n = 1
elif torch.npu.is_available():
    n = 2
