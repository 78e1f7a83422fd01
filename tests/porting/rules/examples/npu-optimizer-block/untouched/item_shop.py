import tensorflow as tf

item = shop.add()
item.name = 'NpuOptimizer'
