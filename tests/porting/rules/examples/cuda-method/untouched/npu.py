import torch

x.npu()
