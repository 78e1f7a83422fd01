import torch
import torch_npu

g = torch.Generator(device='npu')
state = torch.load(path, map_location={'npu:0': 'npu:%d' % rank})
