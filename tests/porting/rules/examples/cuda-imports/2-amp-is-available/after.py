from torch import nn
from torch_npu import npu as cuda
from torch_npu.npu import amp

print(cuda.is_available())
