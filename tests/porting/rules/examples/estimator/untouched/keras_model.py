import tensorflow as tf

class Estimator(tf.keras.Model):
    pass

Estimator()
