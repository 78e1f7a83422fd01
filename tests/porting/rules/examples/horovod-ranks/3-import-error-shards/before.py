import tensorflow as tf

try:
    import horovod.tensorflow as hvd
except ImportError:
    hvd = None

if hvd is not None:
    hvd.init()
shards = hvd.size() if hvd else 1
