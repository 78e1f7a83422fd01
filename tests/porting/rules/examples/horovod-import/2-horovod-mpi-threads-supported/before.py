import tensorflow as tf
import horovod.tensorflow as hvd

print(hvd.mpi_threads_supported())
