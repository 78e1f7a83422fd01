import torch

if args.is_cuda:
    pass
