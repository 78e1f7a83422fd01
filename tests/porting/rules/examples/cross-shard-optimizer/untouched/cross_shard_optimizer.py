from mine import CrossShardOptimizer

opt = CrossShardOptimizer(opt)
