import tensorflow as tf

tf.estimator.EvalSpec(input_fn, hooks=[log])
