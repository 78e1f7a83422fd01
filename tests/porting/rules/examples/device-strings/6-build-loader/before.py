import torch

def build(device='cuda', *, where: str = 'cuda:1'):
    loader = torch.utils.data.DataLoader(data, pin_memory_device='cuda')
