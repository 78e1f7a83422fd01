import torch

g = torch.Generator(device='cuda')
state = torch.load(path, map_location={'cuda:0': 'cuda:%d' % rank})
