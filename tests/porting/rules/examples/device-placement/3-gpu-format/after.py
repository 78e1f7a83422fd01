from tensorflow import device

name = 'GPU:0'
with device('/cpu:0'):
    x = 1
with device('/cpu:0'):
    x = 2
with device('/cpu:0'):
    x = 3
