import torch

device = f'cuda:{rank}'
other = 'cuda:%d' % rank
third = 'cuda:{}'.format(rank)
fourth = 'cuda:' + str(rank)
