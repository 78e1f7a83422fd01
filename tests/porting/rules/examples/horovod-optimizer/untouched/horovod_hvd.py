import horovod.torch as hvd

opt = hvd.DistributedOptimizer(opt)
