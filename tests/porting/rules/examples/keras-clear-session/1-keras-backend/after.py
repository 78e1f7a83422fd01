from tensorflow.keras import backend as K
from npu_bridge.npu_init import npu_clear_session

npu_clear_session()
