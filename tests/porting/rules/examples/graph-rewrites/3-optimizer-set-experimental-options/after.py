import tensorflow as tf

tf.config.optimizer.set_experimental_options({'auto_mixed_precision': False, 'remapping': False, 'layout_optimizer': False})
