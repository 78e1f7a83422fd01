import torch

assert device, 'cuda is missing'
