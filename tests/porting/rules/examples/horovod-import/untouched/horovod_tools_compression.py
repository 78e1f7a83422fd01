import horovod_tools as hvd

hvd.Compression
