import torch

with torch.profiler.record_function('x'):
    pass
