import numpy

name = 'torch.cuda.FloatTensor'
