import torch
import torch_npu

x = torch.npu.FloatTensor(3)
g = torch.npu.NPUGraph()
