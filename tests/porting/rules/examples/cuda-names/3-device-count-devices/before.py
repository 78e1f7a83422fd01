import torch

cuda = torch.cuda
print(f'{torch.cuda.device_count()} devices')
