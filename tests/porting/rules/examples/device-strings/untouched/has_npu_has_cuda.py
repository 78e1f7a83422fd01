import torch

if has_npu:
    device = 'npu'
elif has_cuda:
    device = 'cuda'
