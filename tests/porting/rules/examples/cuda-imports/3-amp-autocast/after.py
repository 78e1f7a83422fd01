import torch
import torch_npu.npu.amp as amp

with amp.autocast():
    pass
