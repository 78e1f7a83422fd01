import torch
import torch_npu

torch.set_autocast_enabled('npu', False)
torch.set_autocast_dtype('npu', dtype)
