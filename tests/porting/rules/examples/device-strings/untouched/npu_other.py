import torch

device = 'npu:0'
other = torch.device('npu')
