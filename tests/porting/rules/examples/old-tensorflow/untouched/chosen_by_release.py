import tensorflow as tf

try:
    image_summary = tf.image_summary
except AttributeError:
    image_summary = tf.summary.image

if tf.__version__.startswith("0."):
    joined = tf.concat(1, [a, b])
    total = tf.mul(a, b)
else:
    joined = tf.concat([a, b], 1)
    total = tf.multiply(a, b)

pack = tf.pack if hasattr(tf, "pack") else tf.stack
