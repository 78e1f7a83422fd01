import torch
from numba import cuda

stream = cuda.stream()
