import tensorflow as tf

rc = tf.estimator.RunConfig(**words)
tf.estimator.Estimator(model_fn, config=rc)
