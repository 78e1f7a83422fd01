import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(devices=['/gpu:0', '/gpu:1'])
