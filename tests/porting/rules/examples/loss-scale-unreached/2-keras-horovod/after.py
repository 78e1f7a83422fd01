import keras
from npu_bridge.npu_init import npu_distributed_optimizer_wrapper

optimizer = npu_distributed_optimizer_wrapper(make_optimizer())
model = keras.models.Sequential([layer])
model.compile(optimizer, 'mse')
