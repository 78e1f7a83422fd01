import tensorflow as tf

if tf.test.is_gpu_available():
    print(tf.test.gpu_device_name())
