from apex.parallel import DistributedDataParallel as DDP
