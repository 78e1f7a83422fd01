import torch
import torch_npu

device = torch.device('npu:0' if torch.npu.is_available() else 'cpu')
x = x.to("npu", non_blocking=True)
