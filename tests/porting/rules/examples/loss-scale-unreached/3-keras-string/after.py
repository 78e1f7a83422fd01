from keras.models import Sequential
from npu_bridge.npu_init import npu_distributed_optimizer_wrapper

model = Sequential([layer])
model.compile(optimizer=npu_distributed_optimizer_wrapper('adam'), loss='mse')
