import ray

rc = ray.train.RunConfig(name='x')
