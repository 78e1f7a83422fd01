import tensorflow as tf
import horovod.tensorflow as hvd

compression = hvd.Compression.fp16 if fp16 else hvd.Compression.none
opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(lr), compression=compression)
