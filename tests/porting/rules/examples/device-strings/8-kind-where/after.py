import torch
import torch_npu

kind = 'npu' if on else 'cpu'
if kind == 'npu':
    where = 'npu'
x = x.to(where)
