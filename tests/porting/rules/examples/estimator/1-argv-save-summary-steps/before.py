import tensorflow as tf

def train(argv):
    rc = tf.estimator.RunConfig(argv[1], save_summary_steps=0, save_checkpoints_steps=9)
    return tf.estimator.Estimator(model_fn, None, rc, None, warm)
