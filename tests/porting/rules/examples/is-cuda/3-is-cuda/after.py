from torch import nn
import torch_npu

assert a.is_npu and not b.is_npu, 'x.is_cuda'
