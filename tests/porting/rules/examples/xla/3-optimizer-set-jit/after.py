import tensorflow as tf

tf.config.optimizer.set_jit(False)
with tf.contrib.compiler.jit.experimental_jit_scope(compile_ops=False):
    pass
with tf.xla.experimental.jit_scope(compile_ops=False):
    pass
