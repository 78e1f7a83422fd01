from numba import cuda

@cuda.jit
def kernel(x):
    i = cuda.grid(1)
