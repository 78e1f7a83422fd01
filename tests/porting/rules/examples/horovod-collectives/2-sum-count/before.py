import os
from horovod.tensorflow import allreduce, Sum

count = allreduce(count, op=Sum)
