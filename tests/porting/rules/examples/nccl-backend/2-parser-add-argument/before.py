import torch

parser.add_argument('--dist-backend', default='nccl')
backend = 'nccl' if torch.distributed.is_nccl_available() else 'gloo'
