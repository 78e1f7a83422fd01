from torch_npu.npu import synchronize
from torch.cuda import nvtx

synchronize()
