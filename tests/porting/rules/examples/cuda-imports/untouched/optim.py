from torch import nn, optim
