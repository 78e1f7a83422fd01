import tensorflow as tf

rc = tf.estimator.RunConfig(logs, 1, save_summary_steps=10,
                            save_checkpoints_steps=50,  # often
                            protocol='grpc')
estimator = tf.estimator.Estimator(model_fn, config=rc)
