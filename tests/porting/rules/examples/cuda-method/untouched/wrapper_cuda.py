import numpy

x = wrapper.cuda()
