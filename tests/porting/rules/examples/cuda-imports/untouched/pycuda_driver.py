import pycuda.driver as cuda
