import numba  # tf

numba.py_func(f)
