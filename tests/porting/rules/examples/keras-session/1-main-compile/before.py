import tensorflow as tf

def main():
    model = tf.keras.Sequential()
    model.compile('sgd', 'mse')
    model.fit(x, y)

if __name__ == '__main__':
    main()
