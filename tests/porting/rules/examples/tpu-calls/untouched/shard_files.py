from mine import shard

shard(files, 8)
