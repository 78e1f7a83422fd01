from torch import nn

assert a.is_cuda and not b.is_cuda, 'x.is_cuda'
