import torch

names = ['CUDNN_STATUS', 'cuBLAS']
if any(name in str(error) for name in ('CUDA error', 'x')):
    retry()
