import torch
import torch_npu

if torch.npu.is_available():
    torch.npu.set_device(0)
