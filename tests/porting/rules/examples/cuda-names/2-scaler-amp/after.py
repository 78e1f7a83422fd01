import torch as th
import torch_npu

scaler = th.npu.amp.GradScaler(enabled=True)
with th.npu.amp.autocast(enabled=True):
    pass
