import numba

@numba.jit
def f(x):
    return x
