import tensorflow as tf

spec = tf.estimator.TrainSpec(input_fn, 9, (a, b))
