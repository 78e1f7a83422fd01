import tensorflow as tf

model = tf.keras.Sequential()
model.fit(x, y)
