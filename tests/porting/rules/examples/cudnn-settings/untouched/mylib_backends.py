import mylib

mylib.backends.cudnn.benchmark = True
