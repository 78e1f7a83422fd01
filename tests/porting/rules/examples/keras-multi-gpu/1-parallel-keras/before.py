import tensorflow as tf

parallel = tf.keras.utils.multi_gpu_model(model, gpus=4)
