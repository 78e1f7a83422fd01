import tensorflow as tf

config = tf.ConfigProto(allow_soft_placement=True)
config.gpu_options.allow_growth = True  # share
config.gpu_options.per_process_gpu_memory_fraction = 0.9
config.log_device_placement = False
