import cupy

cupy.cuda.Device(0).use()
