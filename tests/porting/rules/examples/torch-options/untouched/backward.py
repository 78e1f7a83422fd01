import numpy

loss.backward()
