import tensorflow as tf

gpu_options = tf.GPUOptions()
launch(gpu_options)
