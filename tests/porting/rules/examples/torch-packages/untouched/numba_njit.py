from numba import njit
