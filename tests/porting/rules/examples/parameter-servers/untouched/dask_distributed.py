import dask.distributed as train  # tensorflow

train.Server()
