import tensorflow as tf

sess = tf.Session(config=config)
