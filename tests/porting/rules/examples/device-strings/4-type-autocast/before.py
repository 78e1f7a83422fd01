import torch

kind = 'cuda' if 'cuda' in device else 'cpu'
if x.device.type == 'cuda':
    torch.autocast(device_type='cuda')
