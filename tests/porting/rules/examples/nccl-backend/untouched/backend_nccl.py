import numpy

backend = 'nccl'
