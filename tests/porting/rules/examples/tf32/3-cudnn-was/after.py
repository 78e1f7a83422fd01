from torch.backends import cudnn
import torch_npu

was = torch_npu.npu.conv.allow_hf32
