from tensorflow import device

name = 'GPU:0'
with device(name):
    x = 1
with device(f'/gpu:{i}'):
    x = 2
with device('/{}:{}'.format('gpu', i)):
    x = 3
