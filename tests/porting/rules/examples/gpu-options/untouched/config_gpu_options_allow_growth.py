import tensorflow as tf

print(config.gpu_options.allow_growth)
