import torch

args.cuda = not args.no_cuda
