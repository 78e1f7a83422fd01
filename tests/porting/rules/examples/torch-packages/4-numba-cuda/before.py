import torch
from numba import cuda
