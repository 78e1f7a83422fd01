import torch.distributed as dist  # hvd

print(dist.get_rank())
