import torch

extension = 'lightconv_cuda'
name = 'cuda_rng_state'
