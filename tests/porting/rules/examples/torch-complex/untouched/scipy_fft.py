import scipy.fft

scipy.fft.rfft(x)
