import torch

state = torch.load(path, map_location=lambda s, _: s.cuda(0))
