import tensorflow as tf

reader = tf.WholeFileReader()
key, value = reader.read(queue)
