import torch
import torch_npu

torch_npu.npu.matmul.allow_hf32 = True
torch_npu.npu.conv.allow_hf32 = True
