import torch.distributed as dist
import torch_npu

dist.init_process_group('hccl', rank=rank)
