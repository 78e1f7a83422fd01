import tensorflow as tf

@tf.function(experimental_compile=False)
def f(x):
    return x
