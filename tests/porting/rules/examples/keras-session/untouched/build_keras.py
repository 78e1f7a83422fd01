import tensorflow as tf

def build():
    return tf.keras.Sequential()
