import torch
import torch_npu

device = f'npu:{rank}'
other = 'npu:%d' % rank
third = 'npu:{}'.format(rank)
fourth = 'npu:' + str(rank)
