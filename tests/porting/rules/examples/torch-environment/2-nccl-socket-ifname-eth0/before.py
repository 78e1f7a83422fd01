import os
import torch

os.environ['NCCL_SOCKET_IFNAME'] = 'eth0'
wait = os.getenv('TORCH_NCCL_BLOCKING_WAIT')
