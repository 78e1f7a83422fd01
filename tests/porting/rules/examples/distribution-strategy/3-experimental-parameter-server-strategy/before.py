import tensorflow as tf

strategy = tf.distribute.experimental.ParameterServerStrategy()
