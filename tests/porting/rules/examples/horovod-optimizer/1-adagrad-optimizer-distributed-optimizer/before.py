import tensorflow as tf
import horovod.tensorflow as hvd

opt = tf.train.AdagradOptimizer(0.01)
opt = hvd.DistributedOptimizer(opt, name='dist',
                               compression=hvd.Compression.fp16)
train_op = opt.minimize(loss)
hooks = [hvd.BroadcastGlobalVariablesHook(0)]
