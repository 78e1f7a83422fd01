import tensorflow as tf

tf.config.optimizer.set_experimental_options({'auto_mixed_precision': True, 'remapping': True, 'layout_optimizer': False})
