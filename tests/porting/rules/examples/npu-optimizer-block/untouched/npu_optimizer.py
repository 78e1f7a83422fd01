import tensorflow as tf

op.name = 'NpuOptimizer'
