from mylib import nn

rnn = nn.RNN(8, 8)
