import torch
import torch_npu

def build(device='npu', *, where: str = 'npu:1'):
    loader = torch.utils.data.DataLoader(data, pin_memory_device='npu')
