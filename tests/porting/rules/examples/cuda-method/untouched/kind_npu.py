import torch

if kind == 'npu':
    x.npu()
elif kind == 'cuda':
    x.cuda()
