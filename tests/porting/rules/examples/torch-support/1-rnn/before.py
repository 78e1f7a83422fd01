import torch

rnn = torch.nn.RNN(8, 8)
