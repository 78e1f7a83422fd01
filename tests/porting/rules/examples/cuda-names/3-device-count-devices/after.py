import torch
import torch_npu

cuda = torch.npu
print(f'{torch.npu.device_count()} devices')
