import torch

CUDA_VISIBLE_DEVICES = 1
