from tensorflow.python.client import device_lib
