import torch

rnn = torch.nn.LSTM(8, 8)
