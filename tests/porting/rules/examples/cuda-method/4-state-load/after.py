import torch
import torch_npu

state = torch.load(path, map_location=lambda s, _: s.npu(0))
