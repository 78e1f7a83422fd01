import torch

if is_npu:
    backend = 'hccl'
elif True:
    backend = 'nccl'
