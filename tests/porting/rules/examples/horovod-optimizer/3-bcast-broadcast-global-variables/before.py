import os
import tensorflow as tf
import horovod.tensorflow as hvd

bcast = hvd.broadcast_global_variables(0)
