import tensorflow as tf

estimator.train(input_fn)
