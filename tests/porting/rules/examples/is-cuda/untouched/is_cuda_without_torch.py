import numpy

print(x.is_cuda)
