import tensorflow as tf

tf.config.optimizer.set_jit(True)
with tf.contrib.compiler.jit.experimental_jit_scope():
    pass
with tf.xla.experimental.jit_scope(compile_ops=on):
    pass
