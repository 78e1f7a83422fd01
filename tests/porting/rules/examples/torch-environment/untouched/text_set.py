import torch

text = 'set CUDA_VISIBLE_DEVICES first'
