import tensorflow as tf

with tf.tpu.bfloat16_scope():
    logits = model(x)
