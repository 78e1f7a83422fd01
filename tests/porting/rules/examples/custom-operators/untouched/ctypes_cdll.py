import ctypes  # tf

ctypes.CDLL('roi_pooling.so')
