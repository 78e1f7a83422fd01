import torch

print('CUDA_VISIBLE_DEVICES')
