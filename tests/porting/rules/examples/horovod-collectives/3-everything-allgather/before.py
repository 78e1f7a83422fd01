import os
import horovod.tensorflow as hvd

everything = hvd.allgather(rows)
seed = hvd.broadcast(seed, root_rank=0)
