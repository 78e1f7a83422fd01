from tensorflow.contrib import tpu

opt = tpu.CrossShardOptimizer(opt=inner, reduction='mean')
