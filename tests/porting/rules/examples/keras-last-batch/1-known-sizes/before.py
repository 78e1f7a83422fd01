from keras.datasets import mnist
from keras.models import Sequential
from keras.layers import Dense

(x, y), (x_test, y_test) = mnist.load_data()
x = x.reshape(x.shape[0], 784).astype("float32") / 255
model = Sequential([Dense(10, activation="softmax", input_shape=(784,))])
model.compile("sgd", "sparse_categorical_crossentropy")
if __name__ == "__main__":
    model.fit(x, y, batch_size=128, epochs=2)
