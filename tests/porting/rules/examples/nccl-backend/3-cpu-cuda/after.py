import torch
import torch_npu

torch.distributed.init_process_group(backend='cpu:gloo,npu:hccl')
torch.distributed.init_process_group(backend='hccl')
