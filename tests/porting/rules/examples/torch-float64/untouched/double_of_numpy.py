import numpy

x.double()
