import tensorflow as tf

x = tf.nn.dropout(x, **options)
