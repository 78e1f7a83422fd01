import torch

x.double(3)
