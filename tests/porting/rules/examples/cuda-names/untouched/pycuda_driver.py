import pycuda.driver as cuda
import torch

cuda.init()
