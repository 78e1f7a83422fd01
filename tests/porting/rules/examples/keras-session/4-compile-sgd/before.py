import tensorflow as tf

def train(x, y):
    model = tf.keras.Sequential()
    model.compile('sgd', 'mse')
    model.fit(x, y)
