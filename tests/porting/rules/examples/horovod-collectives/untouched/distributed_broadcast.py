import torch.distributed as hvd

hvd.broadcast(x, 0)
