import torch

x = torch.view_as_complex(pairs)
y = torch.fft.rfft(x)
