import tensorflow as tf

class Mine(tf.estimator.Estimator):
    pass

estimator = Mine(model_fn, config=tf.estimator.RunConfig())
