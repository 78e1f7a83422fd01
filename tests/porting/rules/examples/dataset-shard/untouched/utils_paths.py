from mine import utils  # tf

paths = utils.shard(paths, 8)
