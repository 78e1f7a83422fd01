import tensorflow as tf

@tf.function(experimental_compile=True)
def f(x):
    return x
