import torch
import torch_npu

torch.set_default_tensor_type('torch.npu.FloatTensor')
