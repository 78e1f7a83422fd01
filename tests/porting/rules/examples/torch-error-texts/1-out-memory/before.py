import torch

if 'CUDA out of memory' in str(error):
    retry()
