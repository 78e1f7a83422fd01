from keras.models import load_model
import keras
from npu_bridge.npu_init import close_session, set_keras_session_npu_config


def predict(model):
    print(model.predict(data()))


if __name__ == '__main__':
    npu_keras_session = set_keras_session_npu_config()
    keras.backend.set_session(npu_keras_session)
    model = load_model('a.h5')
    predict(model)
    close_session(npu_keras_session)
