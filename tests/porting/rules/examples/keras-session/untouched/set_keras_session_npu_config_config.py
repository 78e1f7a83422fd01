import tensorflow as tf
from npu_bridge.npu_init import *

sess = set_keras_session_npu_config(config=config)
model = tf.keras.Sequential()
model.fit(x, y)
close_session(sess)
