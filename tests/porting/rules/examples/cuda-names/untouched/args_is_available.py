import torch

cuda = args.cuda
print(cuda.is_available)
