from tensorflow.contrib.distribute import MirroredStrategy

with MirroredStrategy(num_gpus=2).scope():
    pass
