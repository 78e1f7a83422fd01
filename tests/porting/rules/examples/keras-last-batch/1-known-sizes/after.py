from keras.datasets import mnist
from keras.models import Sequential
from keras.layers import Dense
import keras
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

(x, y), (x_test, y_test) = mnist.load_data()
x = x.reshape(x.shape[0], 784).astype("float32") / 255
model = Sequential([Dense(10, activation="softmax", input_shape=(784,))])
model.compile("sgd", "sparse_categorical_crossentropy")
if __name__ == "__main__":
    npu_keras_session = set_keras_session_npu_config()
    keras.backend.set_session(npu_keras_session)
    model.fit(x, y, batch_size=128, epochs=2)
    close_session(npu_keras_session)
