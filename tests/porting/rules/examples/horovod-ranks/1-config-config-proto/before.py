import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
lr = 0.001 * hvd.size()
folder = 'logs' if hvd.rank() == 0 else None
