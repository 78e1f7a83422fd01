import tensorflow as tf

op = config.graph_options.rewrite_options.custom_optimizers.add()
op.name = 'Mine'
