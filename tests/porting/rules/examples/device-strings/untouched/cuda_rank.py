import torch

print('cuda')
print(f'cuda:{rank}')
