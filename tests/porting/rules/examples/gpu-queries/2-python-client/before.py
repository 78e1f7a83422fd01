from tensorflow.python.client import device_lib

devices = device_lib.list_local_devices()
