import torch

torch._C._jit_set_nvfuser_enabled(True)
