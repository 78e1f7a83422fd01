from keras import backend as K
from npu_bridge.npu_init import set_keras_session_npu_config

for i in range(3):
    K.clear_session()
    K.set_session(set_keras_session_npu_config())
    build(i)
