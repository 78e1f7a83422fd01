import tensorflow as tf

class Mine(tf.estimator.Estimator):
    pass
