import torch

names = {'cuda': 'a', 'npu': 'b'}
