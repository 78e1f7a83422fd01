import torch
import torch_npu

parser.add_argument('--dist-backend', default='hccl')
backend = 'hccl' if torch.distributed.is_hccl_available() else 'gloo'
