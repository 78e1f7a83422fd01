import tensorflow as tf

boxes = tf.py_func(nms, [boxes, scores], tf.float32)
