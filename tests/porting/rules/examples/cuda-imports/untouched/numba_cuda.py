from numba import cuda
