from keras.models import Sequential
from keras import backend as K
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

epochs = 3
npu_keras_session = set_keras_session_npu_config()
K.set_session(npu_keras_session)
model = Sequential()
model.fit(x, y, epochs=epochs)
close_session(npu_keras_session)
