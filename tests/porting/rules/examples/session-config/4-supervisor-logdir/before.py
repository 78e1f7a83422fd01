import tensorflow as tf

sv = tf.train.Supervisor(logdir=logs)
with sv.managed_session() as sess:
    pass
