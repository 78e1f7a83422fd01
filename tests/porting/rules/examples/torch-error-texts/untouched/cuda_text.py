import numpy

if 'CUDA error' in text:
    pass
