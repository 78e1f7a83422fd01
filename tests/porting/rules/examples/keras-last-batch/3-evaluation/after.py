from tensorflow import keras
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

(x, y), (x_test, y_test) = keras.datasets.cifar10.load_data()
model = keras.models.load_model("model.h5")
if __name__ == "__main__":
    npu_keras_session = set_keras_session_npu_config()
    print(model.evaluate(x_test, y_test, batch_size=64))
    close_session(npu_keras_session)
