from numba import cuda

target = 'cuda'
