import keras
from npu_bridge.npu_init import NPUBroadcastGlobalVariablesCallback

callbacks = [NPUBroadcastGlobalVariablesCallback(0),
             keras.callbacks.Callback()]
