from torch import nn, cuda
from torch.cuda import amp

print(cuda.is_available())
