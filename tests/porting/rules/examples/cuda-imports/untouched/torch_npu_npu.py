from torch_npu.npu.amp import autocast
