import torch

torch.distributed.init_process_group(backend='cpu:gloo,cuda:nccl')
torch.distributed.init_process_group(backend='NCCL')
