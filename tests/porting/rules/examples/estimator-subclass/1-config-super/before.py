import tensorflow as tf

class Mine(tf.estimator.Estimator):
    def __init__(self, config):
        super(Mine, self).__init__(model_fn, config=config)
