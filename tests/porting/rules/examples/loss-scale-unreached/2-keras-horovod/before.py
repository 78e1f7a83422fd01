import keras
import horovod.keras as hvd

optimizer = hvd.DistributedOptimizer(make_optimizer())
model = keras.models.Sequential([layer])
model.compile(optimizer, 'mse')
