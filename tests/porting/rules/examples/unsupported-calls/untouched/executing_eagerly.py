import tensorflow as tf

if tf.executing_eagerly():
    pass
