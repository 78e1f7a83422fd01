import numpy as np

np.fft.rfft(x)
