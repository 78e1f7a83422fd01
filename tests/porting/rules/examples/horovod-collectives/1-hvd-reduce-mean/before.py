import tensorflow as tf
import horovod.tensorflow as hvd

loss = hvd.allreduce(tf.reduce_mean(x))
