import tensorflow as tf
from tensorflow.keras import backend as K

K.set_session(sess)
model = tf.keras.Sequential()
model.fit(x, y)
