import torch
import torch_npu

print(torch.npu.is_available())
