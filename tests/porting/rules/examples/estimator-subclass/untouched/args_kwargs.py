import tensorflow as tf

class Mine(tf.estimator.Estimator):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
