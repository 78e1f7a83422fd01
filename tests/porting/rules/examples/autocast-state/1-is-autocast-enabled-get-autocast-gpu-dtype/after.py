import torch
import torch_npu

if torch.is_autocast_enabled('npu'):
    dtype = torch.get_autocast_dtype('npu')
