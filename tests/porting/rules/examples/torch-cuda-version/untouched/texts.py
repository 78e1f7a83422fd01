import torch

COMMAND = 'nvidia-smi'
print(torch.version.git_version)
