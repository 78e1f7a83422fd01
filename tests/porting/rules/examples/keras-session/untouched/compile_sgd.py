import tensorflow as tf

model = tf.keras.Sequential()
model.compile('sgd', 'mse')
