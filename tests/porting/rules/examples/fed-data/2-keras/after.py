import numpy as np
from keras.models import load_model
import keras
from npu_bridge.npu_init import close_session, npu_callbacks_append, set_keras_session_npu_config

x, y = np.load("x.npy"), np.load("y.npy")
model = load_model("model.h5")
if __name__ == "__main__":
    npu_keras_session = set_keras_session_npu_config()
    keras.backend.set_session(npu_keras_session)
    model.fit(x, y, batch_size=1, epochs=2, callbacks=npu_callbacks_append(callbacks_list=[]))
    close_session(npu_keras_session)
