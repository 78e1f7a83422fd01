import torch

fft.rfft(x)
