import torch
import torch_npu

kind = 'npu' if 'npu' in device else 'cpu'
if x.device.type == 'npu':
    torch.autocast(device_type='npu')
