import os
import torch

os.environ['HCCL_SOCKET_IFNAME'] = 'eth0'
wait = os.getenv('TORCH_HCCL_BLOCKING_WAIT')
