import tensorflow as tf

text = name.replace('a', 'b')
settings = settings.replace(session_config=tf.ConfigProto())
