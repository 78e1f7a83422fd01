from tensorflow import keras

(x, y), (x_test, y_test) = keras.datasets.cifar10.load_data()
model = keras.models.load_model("model.h5")
if __name__ == "__main__":
    print(model.evaluate(x_test, y_test, batch_size=64))
