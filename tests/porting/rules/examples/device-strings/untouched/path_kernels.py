import torch

path = 'kernels/cuda/op.cu'
