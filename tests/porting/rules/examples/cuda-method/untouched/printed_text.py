import torch

print('x.cuda()')  # x.cuda()
