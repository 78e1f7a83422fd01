import torch

kind = 'cuda' if on else 'cpu'
if kind == 'cuda':
    where = 'cuda'
x = x.to(where)
