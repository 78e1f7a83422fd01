from torch.utils.cpp_extension import CUDAExtension, BuildExtension
