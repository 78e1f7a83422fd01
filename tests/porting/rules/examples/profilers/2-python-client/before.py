import tensorflow as tf
from tensorflow.python.client import timeline
from tensorflow.python import debug as tf_debug

options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
trace = timeline.Timeline(metadata.step_stats)
sess = tf_debug.LocalCLIDebugWrapperSession(sess)
