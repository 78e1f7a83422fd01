import tensorflow.compat.v1 as tf

with tf.train.MonitoredTrainingSession(
    checkpoint_dir=logs,  # where
    config=config,
) as sess:
    pass
