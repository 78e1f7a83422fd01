import mine

mine.device_lib.list_local_devices()
