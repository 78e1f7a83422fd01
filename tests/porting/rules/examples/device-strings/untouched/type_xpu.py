import torch

if device.type in ('cuda', 'npu', 'xpu'):
    pass
