import tensorflow as tf

spec = tf.estimator.TrainSpec(input_fn, max_steps=9)
